"""Loop programs for software targets: the native set, and the legalisation that ends in it.

``native`` is the set as data, ``legalise`` the way there, ``verifier`` the check of what comes out.
"""
