"""Store reads as data frames and summaries, without Streamlit."""
