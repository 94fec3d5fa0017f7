"""Scripted models: servers on loopback that give an agent the answers that a test wrote down.

``serving`` runs any of them; ``responses`` speaks the Responses API, ``messages`` the Messages API, ``completions``
Chat Completions, ``gemini`` the Gemini API. What an agent does with them is real; what the model says is not. Every
request is kept, so that a test can hold a record against what reached the model.
"""
