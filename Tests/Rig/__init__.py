"""What the suites outside Swift stand on: raw connections, scripted origin servers, and the processes under test."""
