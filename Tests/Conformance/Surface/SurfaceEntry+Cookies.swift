extension SurfaceEntry {
    /// Section N: cookies.
    static let cookies: [SurfaceEntry] = [
        .proven("N1", "HTTPCookie", by: "HTTPCookieTests.cookiesDifferInAnyProperty"),
        .proven(
            "N2", "init(properties:)", by: "HTTPCookieTests.needANameAValueAPathAndADomain",
            "HTTPCookieTests.takeTheDomainFromTheOriginWhereNoneIsNamed", "HTTPCookieTests.takeAnyTextAndAnyFlag"),
        .proven("N3", "requestHeaderFields(with:)", by: "HTTPCookieTests.areSentInOneField"),
        .proven(
            "N4", "cookies(withResponseHeaderFields:for:)", by: "ResponseCookieTests.areReadWithTheirAttributes",
            "ResponseCookieTests.arePartedWhereTheNextOneBegins", "ResponseCookieTests.readEveryFormOfADate"),
        .proven(
            "N5", "properties of a cookie", by: "HTTPCookieTests.cookieWithoutExpiryIsASessionCookie",
            "HTTPCookieTests.ofVersion0KnowNoMaximumAgeAndOnePort", "HTTPCookieTests.ofVersion1CountTheirAge",
            "HTTPCookieTests.areMadeAgainFromTheirProperties"),
        .proven("N6", "sameSitePolicy", by: "ResponseCookieTests.responseCookieHasItsSameSitePolicy"),
        .proven(
            "N7", "HTTPCookieStringPolicy", by: "ResponseCookieTests.responseCookieHasItsSameSitePolicy",
            "HTTPCookieTests.takeAnyTextAndAnyFlag"),
        .proven("N8", "HTTPCookiePropertyKey", by: "HTTPCookieTests.nameTheirPropertiesAsFoundationDoes"),
        .proven(
            "N9", "AcceptPolicy", by: "HTTPCookieStorageTests.acceptPoliciesHaveFoundationsNumbers",
            "HTTPCookieStorageTests.askTheDocumentWhoseCookiesTheyTake"),
        .proven(
            "N10", "HTTPCookieStorage", by: "HTTPCookieStorageTests.holdAgainstManyThreads",
            "CookieFileTests.outliveTheirStorageUnlessTheyEndWithIt"),
        .proven("N11", "shared", by: "HTTPCookieStorageTests.areOneForAllThreads"),
        .proven(
            "N12", "sharedCookieStorage(forGroupContainerIdentifier:)", by: "HTTPCookieStorageTests.areOneForAllThreads"
        ),
        .proven("N13", "cookies", by: "HTTPCookieStorageTests.keepOneCookieOfANameADomainAndAPath"),
        .proven(
            "N14", "setCookie(_:), deleteCookie(_:), removeCookies(since:)",
            by: "HTTPCookieStorageTests.keepOneCookieOfANameADomainAndAPath", "HTTPCookieStorageTests.deleteCookies"),
        .proven(
            "N15", "cookies(for:)", by: "HTTPCookieStorageTests.giveCookiesToTheHostsThatTheyAreFor",
            "HTTPCookieStorageTests.giveCookiesByPathAndSecurityLongerPathsFirst",
            "HTTPCookieStorageTests.sameSiteCookiesAreNotSentToOtherSites"),
        .proven(
            "N16", "setCookies(_:for:mainDocumentURL:)",
            by: "HTTPCookieStorageTests.storageKeepsCookiesThatTheHostMaySet",
            "HTTPCookieStorageTests.storageEnforcesCookieNamePrefixes"),
        .proven("N17", "cookieAcceptPolicy", by: "HTTPCookieStorageTests.askTheDocumentWhoseCookiesTheyTake"),
        .proven("N18", "sortedCookies(using:)", by: "HTTPCookieStorageTests.sortByDescriptors"),
        .proven("N19", "storeCookies(_:for: task)", by: "CookieLoadingTests.areAskedOfAStorageForTheTask"),
        .proven("N20", "getCookiesFor(_:completionHandler:)", by: "CookieLoadingTests.areAskedOfAStorageForTheTask"),
        .proven(
            "N21", "NSHTTPCookieManagerCookiesChanged", by: "HTTPCookieStorageTests.notificationIsPostedForChangesOnly"),
        .proven(
            "N22", "NSHTTPCookieManagerAcceptPolicyChanged",
            by: "HTTPCookieStorageTests.notificationIsPostedForChangesOnly"),
    ]
}
