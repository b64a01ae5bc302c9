"""The Streamlit dashboard: fleet, session, audit."""
