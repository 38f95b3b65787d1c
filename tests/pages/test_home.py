def test_home_opens_on_an_empty_folder(open_page, folder):
    page = open_page("home")

    assert not page.exception
    assert not folder.exists()
