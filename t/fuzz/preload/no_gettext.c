/*
 * Preloaded beside AddressSanitizer's runtime: with it, glibc's own gettext
 * functions never return in a PostgreSQL that was built with --enable-nls.
 */
#define MESSAGE(value) { return (char *) (value); }

char	   *bindtextdomain(const char *domain, const char *folder);
char	   *textdomain(const char *domain);
char	   *bind_textdomain_codeset(const char *domain, const char *codeset);
char	   *gettext(const char *message);
char	   *dgettext(const char *domain, const char *message);
char	   *dcgettext(const char *domain, const char *message, int category);
char	   *ngettext(const char *one, const char *more, unsigned long count);
char	   *dngettext(const char *domain, const char *one, const char *more,
					  unsigned long count);

char	   *bindtextdomain(const char *domain, const char *folder) MESSAGE(folder)
char	   *textdomain(const char *domain) MESSAGE(domain)
char	   *bind_textdomain_codeset(const char *domain, const char *codeset) MESSAGE(codeset)
char	   *gettext(const char *message) MESSAGE(message)
char	   *dgettext(const char *domain, const char *message) MESSAGE(message)
char	   *dcgettext(const char *domain, const char *message, int category) MESSAGE(message)
char	   *ngettext(const char *one, const char *more, unsigned long count) MESSAGE(count == 1 ? one : more)
char	   *dngettext(const char *domain, const char *one, const char *more,
					  unsigned long count) MESSAGE(count == 1 ? one : more)
