"""Parts of the offline segmentation: what is left out, what repeats, what a segment costs, which is best."""
