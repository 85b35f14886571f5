extension SurfaceEntry {
    /// Section D: configurations of sessions.
    static let configurations: [SurfaceEntry] = [
        .proven(
            "D1", "URLSessionConfiguration", by: "URLSessionConfigurationTests.configurationIsCopiedWithEveryProperty"),
        .proven("D2", "default", by: "URLSessionConfigurationTests.configurationHasFoundationsDefaults"),
        .proven("D3", "ephemeral", by: "URLSessionConfigurationTests.haveStoresOfTheirOwnWhenEphemeral"),
        .deviation(
            "D4", "background(withIdentifier:)",
            because: "Not supported: a transfer ends with its process. The configuration can be made."),
        .deviation("D5", "backgroundSessionConfiguration(_:)", because: "As D4."),
        .proven("D6", "init()", by: "URLSessionConfigurationTests.configurationHasFoundationsDefaults"),
        .proven("D7", "identifier", by: "URLSessionConfigurationTests.nameABackgroundSession"),
        .proven("D8", "requestCachePolicy", by: "CacheLoadingTests.followsThePolicyOfTheConfiguration"),
        .proven(
            "D9", "timeoutIntervalForRequest", by: "TimeoutTests.requestTimeoutEndsAnIdleTask",
            "TimeoutTests.areTheRequestsWhereItHasOne", "TimeoutTests.countFromTheLastByteEitherWay"),
        .proven(
            "D10", "timeoutIntervalForResource", by: "TimeoutTests.resourceTimeoutEndsAnActiveTask",
            "TimeoutTests.rangeOverAllAttempts"),
        .proven(
            "D11", "networkServiceType", by: "TrafficMarkTests.areThoseOfRFC4594",
            "TrafficMarkTests.areOnTheSocketOfALoad",
            "TrafficMarkTests.areOnTheSocketsOfStreamAndWebSocketTasks"),
        .deviation("D12", "allowsCellularAccess", because: "Kept, copied, and without effect on Linux."),
        .deviation("D13", "allowsExpensiveNetworkAccess", because: "Kept, copied, and without effect on Linux."),
        .deviation("D14", "allowsConstrainedNetworkAccess", because: "Kept, copied, and without effect on Linux."),
        .deviation("D15", "allowsUltraConstrainedNetworkAccess", because: "Kept, copied, and without effect on Linux."),
        .deviation("D16", "requiresDNSSECValidation", because: "Names are not validated: where it is set, tasks fail."),
        .deviation("D17", "waitsForConnectivity", because: "Kept, copied, and without effect on Linux."),
        .deviation("D18", "isDiscretionary", because: "Kept, copied, and without effect on Linux."),
        .deviation("D19", "sharedContainerIdentifier", because: "Kept, copied, and without effect on Linux."),
        .deviation("D20", "sessionSendsLaunchEvents", because: "Kept, copied, and without effect on Linux."),
        .deviation(
            "D21", "connectionProxyDictionary", because: "Not supported: tasks that would use a proxy fail."),
        .deviation(
            "D22", "proxyConfigurations", because: "The framework that its type belongs to does not exist on Linux."),
        .proven(
            "D23", "tlsMinimumSupportedProtocol", by: "URLSessionConfigurationTests.nameVersionsOfTLSInOlderWordsToo"),
        .proven(
            "D24", "tlsMaximumSupportedProtocol", by: "URLSessionConfigurationTests.nameVersionsOfTLSInOlderWordsToo"),
        .proven(
            "D25", "tlsMinimumSupportedProtocolVersion", by: "SecureLoadingTests.keepsToTheVersionsOfTheConfiguration"),
        .proven(
            "D26", "tlsMaximumSupportedProtocolVersion", by: "SecureLoadingTests.keepsToTheVersionsOfTheConfiguration"),
        .deviation("D27", "httpShouldUsePipelining", because: "Kept, copied, and without effect on Linux."),
        .proven(
            "D28", "httpShouldSetCookies", by: "CookieLoadingTests.areNotSentWhereTheConfigurationOrTheRequestForbidsIt"
        ),
        .proven(
            "D29", "httpCookieAcceptPolicy", by: "CookieLoadingTests.areNotKeptWhereThePolicyForbidsIt",
            "CookieLoadingTests.ofOtherDocumentsAreNotKept"),
        .proven(
            "D30", "httpAdditionalHeaders", by: "RequestFieldTests.areTheRequestsBeforeTheSessions",
            "LocalFaultTests.reservedFieldsOfARequestAreIgnored",
            "BasicAuthenticationTests.basicCredentialOfTheSessionIsSent",
            "BasicAuthenticationTests.givesWayToACredentialThatAnswersAChallenge"),
        .proven("D31", "httpMaximumConnectionsPerHost", by: "ConnectionUseTests.areNoMoreThanTheConfigurationAllows"),
        .proven(
            "D32", "httpCookieStorage", by: "CookieLoadingTests.areKeptAndSentBack",
            "SessionStoresTests.areNotThereWhereTheConfigurationHasNone"),
        .proven(
            "D33", "urlCredentialStorage", by: "BasicAuthenticationTests.takesTheDefaultCredentialOfTheStorage",
            "SessionStoresTests.areNotThereWhereTheConfigurationHasNone"),
        .proven(
            "D34", "urlCache", by: "CacheLoadingTests.answersWhileFresh",
            "SessionStoresTests.areNotThereWhereTheConfigurationHasNone"),
        .deviation("D35", "shouldUseExtendedBackgroundIdleMode", because: "Kept, copied, and without effect on Linux."),
        .proven("D36", "protocolClasses", by: "ProtocolClassTests.areAskedInTheirOrderBeforeTheSessionsOwn"),
        .deviation("D37", "multipathServiceType", because: "Kept, copied, and without effect on Linux."),
        .proven("D38", "MultipathServiceType", by: "URLSessionConfigurationTests.numberTheirChoicesAsFoundationDoes"),
        .deviation("D39", "usesClassicLoadingMode", because: "Kept, copied, and without effect on Linux."),
        .deviation("D40", "enablesEarlyData", because: "Kept, copied, and without effect on Linux."),
    ]
}
