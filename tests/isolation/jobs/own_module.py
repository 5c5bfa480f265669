value = None
items = []


class Thing:
    def __init__(self, number):
        self.number = number

    def size(self):
        return abs(self.number)
