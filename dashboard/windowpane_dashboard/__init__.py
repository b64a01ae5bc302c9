"""The Streamlit dashboard: fleet, session, compare, replay, alerts, audit."""
