"""A chat in a Streamlit page: `streamlit run streamlit_chat.py`."""

import os

import streamlit as st

from agent_runtime import Agent

state = st.session_state
agent = state.setdefault("agent", Agent(os.environ.get("MODEL", "local")))
for message in state.session.messages if "session" in state else ():
    st.chat_message(message.role).write(message.content)
if question := st.chat_input("Say something"):
    st.chat_message("user").write(question)
    stream = agent.stream(question, session=state.get("session"))
    st.chat_message("assistant").write_stream(stream.text())
    state.session = stream.result.session
