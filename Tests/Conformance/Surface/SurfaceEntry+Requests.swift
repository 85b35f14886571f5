extension SurfaceEntry {
    /// Section P: requests and responses.
    static let requests: [SurfaceEntry] = [
        .proven(
            "P1", "URLRequest", by: "URLRequestTests.requestHasFoundationsDefaults",
            "URLRequestTests.explicitTimeoutDiffersFromTheDefault",
            "URLRequestTests.fieldKeepsTheNameFirstGiven", "URLRequestTests.requestsDifferInAnyProperty"),
        .proven(
            "P2", "NSURLRequest, NSMutableURLRequest", by: "NSURLRequestTests.requestIsCopiedWithAllItHolds",
            "NSURLRequestTests.requestIsDecodedFromAnArchive"),
        .proven("P3", "allowsExpensiveNetworkAccess", by: "ConnectivityTests.stricterSettingOfARequestCounts"),
        .proven("P4", "allowsConstrainedNetworkAccess", by: "ConnectivityTests.stricterSettingOfARequestCounts"),
        .deviation("P5", "allowsUltraConstrainedNetworkAccess", because: "Kept, copied, and without effect on Linux."),
        .deviation("P6", "assumesHTTP3Capable", because: "Kept, and without effect: there is no HTTP/3 here."),
        .proven("P7", "attribution", by: "URLRequestTests.requestEnumsHaveFoundationsRawValues"),
        .proven("P8", "requiresDNSSECValidation", by: "AuthenticatedNameLoadingTests.authenticatedNameIsLoaded"),
        .deviation("P9", "cookiePartitionIdentifier", because: "Kept, and without effect: cookies are in one store."),
        .proven("P10", "CachePolicy", by: "URLRequestTests.requestEnumsHaveFoundationsRawValues"),
        .proven("P11", "NetworkServiceType", by: "URLRequestTests.requestEnumsHaveFoundationsRawValues"),
        .proven(
            "P12", "URLResponse", by: "URLResponseTests.responseHasItsInitialValues",
            "URLResponseTests.suggestedFilenameIsTheEndOfThePath"),
        .proven(
            "P13", "HTTPURLResponse", by: "HTTPURLResponseTests.wellKnownFieldNamesAreCapitalized",
            "HTTPURLResponseTests.repeatedFieldsAreJoined", "HTTPURLResponseTests.statusCodesHaveLocalizedNames"),
    ]
}
