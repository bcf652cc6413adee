"""External streams and materialized views, as far as statements make and steer them."""
