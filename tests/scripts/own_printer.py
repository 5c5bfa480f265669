def say(*words):
    print(*words, force=True)
