"""Where outbound connections may go."""
