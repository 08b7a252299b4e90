"""The ground of the suites outside Swift: raw connections, scripted origin servers, and the processes under test."""
