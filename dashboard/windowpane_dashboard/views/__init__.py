"""The pages, one per module, run by Streamlit."""
