"""SQLAlchemy's dialect: `create_engine("penstock://root:…@127.0.0.1:7700/power")`."""
