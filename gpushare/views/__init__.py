"""What a person sees: live view, summary, profile."""
