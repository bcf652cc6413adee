"""The client for those who know another system."""
