"""One run as one file that reads without LIOB: an HTML page and a picture."""
