"""Reports results of a test program to run_tests_of() of MongoFdwTest.pm."""


class Checks:
    def __init__(self):
        self.failed = 0

    def check(self, offenders, text):
        """Reports a test, which fails if there are 'offenders'."""
        print(("not ok - " if offenders else "ok - ") + text, flush=True)
        if offenders:
            self.failed += 1
            for offender in list(offenders)[:10]:
                print(f"#   {offender}")
