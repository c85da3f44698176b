"""Parts of the Models page: what the Hub offers, downloads under way, and what is on this machine."""
