"""Real web applications with injected regressions, as in §6 of Liao et al.: found from logs and CPU alone?"""
