"""One regression as a page: the series, flame graphs before and after, suspects. Rendering is pure."""
