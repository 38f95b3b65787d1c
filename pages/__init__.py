"""The pages of the app: one script a page, each of which works alone and by deep link; ``shared`` is for all."""
