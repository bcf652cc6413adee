"""SHOW and the tables of `information_schema`: what there is, as one user may see it."""
