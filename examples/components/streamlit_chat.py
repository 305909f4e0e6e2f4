"""A chat in a Streamlit page: `streamlit run streamlit_chat.py`."""

import streamlit as st

from agent_runtime import Agent

if "chat" not in st.session_state:
    st.session_state.chat = Agent("local").chat()
for message in st.session_state.chat.messages:
    st.chat_message(message.role).write(message.content)
if question := st.chat_input("Say something"):
    st.chat_message("user").write(question)
    st.chat_message("assistant").write_stream(st.session_state.chat.say(question))
