"""What every page shares: navigation, the source of results, selection, tables, text, the guard."""
