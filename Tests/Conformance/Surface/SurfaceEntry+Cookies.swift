extension SurfaceEntry {
    /// Section N: cookies.
    static let cookies: [SurfaceEntry] = [
        .proven("N1", "HTTPCookie", by: "HTTPCookieTests.cookiesDifferInAnyProperty"),
        .proven(
            "N2", "init(properties:)", by: "HTTPCookieTests.cookieNeedsANameAValueAPathAndADomain",
            "HTTPCookieTests.missingDomainComesFromTheOrigin", "HTTPCookieTests.anyTextAndAnyFlagAreTaken"),
        .proven("N3", "requestHeaderFields(with:)", by: "HTTPCookieTests.cookiesAreSentInOneField"),
        .proven(
            "N4", "cookies(withResponseHeaderFields:for:)", by: "ResponseCookieTests.cookieIsReadWithItsAttributes",
            "ResponseCookieTests.joinedCookiesArePartedWhereTheNextBegins", "ResponseCookieTests.everyFormOfADateIsRead"
        ),
        .proven(
            "N5", "properties of a cookie", by: "HTTPCookieTests.cookieWithoutExpiryIsASessionCookie",
            "HTTPCookieTests.version0CookieHasNoMaximumAgeAndOnePort", "HTTPCookieTests.version1CookieUsesMaxAge",
            "HTTPCookieTests.cookieIsMadeAgainFromItsProperties"),
        .proven("N6", "sameSitePolicy", by: "ResponseCookieTests.responseCookieHasItsSameSitePolicy"),
        .proven(
            "N7", "HTTPCookieStringPolicy", by: "ResponseCookieTests.responseCookieHasItsSameSitePolicy",
            "HTTPCookieTests.anyTextAndAnyFlagAreTaken"),
        .proven("N8", "HTTPCookiePropertyKey", by: "HTTPCookieTests.propertyKeysAreNamedAsInFoundation"),
        .proven(
            "N9", "AcceptPolicy", by: "HTTPCookieStorageTests.acceptPoliciesHaveFoundationsNumbers",
            "HTTPCookieStorageTests.mainDocumentDecidesAboutCookies"),
        .proven(
            "N10", "HTTPCookieStorage", by: "HTTPCookieStorageTests.storageIsSafeFromManyThreads",
            "CookieFileTests.persistentCookiesOutliveTheirStorage"),
        .proven("N11", "shared", by: "HTTPCookieStorageTests.sharedStorageIsOneForAllThreads"),
        .proven(
            "N12", "sharedCookieStorage(forGroupContainerIdentifier:)",
            by: "HTTPCookieStorageTests.sharedStorageIsOneForAllThreads"
        ),
        .proven("N13", "cookies", by: "HTTPCookieStorageTests.storageKeepsOneCookieOfANameDomainAndPath"),
        .proven(
            "N14", "setCookie(_:), deleteCookie(_:), removeCookies(since:)",
            by: "HTTPCookieStorageTests.storageKeepsOneCookieOfANameDomainAndPath",
            "HTTPCookieStorageTests.deletedCookiesAreGone"),
        .proven(
            "N15", "cookies(for:)", by: "HTTPCookieStorageTests.cookiesAreSentToTheirHosts",
            "HTTPCookieStorageTests.cookiesAreGivenByPathAndSecurity",
            "HTTPCookieStorageTests.sameSiteCookiesAreNotSentToOtherSites"),
        .proven(
            "N16", "setCookies(_:for:mainDocumentURL:)",
            by: "HTTPCookieStorageTests.storageKeepsCookiesThatTheHostMaySet",
            "HTTPCookieStorageTests.storageEnforcesCookieNamePrefixes"),
        .proven("N17", "cookieAcceptPolicy", by: "HTTPCookieStorageTests.mainDocumentDecidesAboutCookies"),
        .proven("N18", "sortedCookies(using:)", by: "HTTPCookieStorageTests.cookiesAreSortedByDescriptors"),
        .proven("N19", "storeCookies(_:for: task)", by: "CookieLoadingTests.storageIsAskedForTheTask"),
        .proven("N20", "getCookiesFor(_:completionHandler:)", by: "CookieLoadingTests.storageIsAskedForTheTask"),
        .proven(
            "N21", "NSHTTPCookieManagerCookiesChanged", by: "HTTPCookieStorageTests.notificationIsPostedForChangesOnly"),
        .proven(
            "N22", "NSHTTPCookieManagerAcceptPolicyChanged",
            by: "HTTPCookieStorageTests.notificationIsPostedForChangesOnly"),
    ]
}
