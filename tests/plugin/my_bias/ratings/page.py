from equipoise.report import Page

PAGE = Page(leads=("rating_gap",), subjects="ratings")
