"""Results as inert HTML and words, for pages and for files: no Streamlit here."""
