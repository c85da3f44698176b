"""Named questions to the database: frames and small records for pages, commands and exports."""
