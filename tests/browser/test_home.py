def test_a_cold_server_opens_home(app):
    page = app.open("/")

    assert page.title() == "Home · Forkbook"
