"""The flights demo: a year of departures from New York replayed through the mesh, every window
checked.
"""
