"""The Faust app, the one worker loop and its service."""
