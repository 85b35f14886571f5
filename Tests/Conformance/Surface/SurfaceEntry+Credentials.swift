extension SurfaceEntry {
    /// Section L: challenges, protection spaces, credentials.
    static let credentials: [SurfaceEntry] = [
        .proven("L1", "URLAuthenticationChallenge", by: "URLAuthenticationChallengeTests.challengeHasItsInitialValues"),
        .proven(
            "L2", "init(protectionSpace:proposedCredential:previousFailureCount:failureResponse:error:sender:)",
            by: "URLAuthenticationChallengeTests.challengeHasItsInitialValues"),
        .proven(
            "L3", "init(authenticationChallenge:sender:)",
            by: "URLAuthenticationChallengeTests.challengeHasItsInitialValues"),
        .proven("L4", "protectionSpace", by: "URLAuthenticationChallengeTests.challengeHasItsInitialValues"),
        .proven("L5", "proposedCredential", by: "URLAuthenticationChallengeTests.challengeHasItsInitialValues"),
        .proven("L6", "previousFailureCount", by: "URLAuthenticationChallengeTests.challengeHasItsInitialValues"),
        .proven("L7", "failureResponse", by: "URLAuthenticationChallengeTests.challengeHasItsInitialValues"),
        .proven("L8", "error", by: "URLAuthenticationChallengeTests.challengeHasItsInitialValues"),
        .proven("L9", "sender", by: "URLAuthenticationChallengeTests.challengeHasItsInitialValues"),
        .proven(
            "L10", "URLAuthenticationChallengeSender",
            by: "BasicAuthenticationTests.challengeIsAnsweredThroughTheSenderToo",
            "URLAuthenticationChallengeTests.challengeContinuesWithoutACredentialByDefault"),
        .proven(
            "L11", "URLProtectionSpace", by: "URLProtectionSpaceTests.spacesAreEqualWhenAllPartsAre",
            "URLProtectionSpaceTests.spaceHasADescription", "URLProtectionSpaceTests.spaceIsDecodedFromAnArchive"),
        .proven(
            "L12", "init(host:port:protocol:realm:authenticationMethod:)",
            by: "URLProtectionSpaceTests.protectionSpaceHasItsInitialValues"),
        .proven(
            "L13", "init(proxyHost:port:type:realm:authenticationMethod:)",
            by: "URLProtectionSpaceTests.protectionSpaceHasItsInitialValues"),
        .proven("L14", "host", by: "URLProtectionSpaceTests.protectionSpaceHasItsInitialValues"),
        .proven("L15", "port", by: "URLProtectionSpaceTests.protectionSpaceHasItsInitialValues"),
        .proven("L16", "protocol", by: "URLProtectionSpaceTests.protectionSpaceHasItsInitialValues"),
        .proven("L17", "realm", by: "URLProtectionSpaceTests.protectionSpaceHasItsInitialValues"),
        .proven("L18", "authenticationMethod", by: "URLProtectionSpaceTests.protectionSpaceHasItsInitialValues"),
        .proven("L19", "isProxy()", by: "URLProtectionSpaceTests.protectionSpaceHasItsInitialValues"),
        .proven("L20", "proxyType", by: "URLProtectionSpaceTests.protectionSpaceHasItsInitialValues"),
        .proven(
            "L21", "receivesCredentialSecurely", by: "URLProtectionSpaceTests.protectionSpaceReportsSecureTransmission"),
        .proven("L22", "distinguishedNames", by: "URLProtectionSpaceTests.protectionSpaceHasDistinguishedNames"),
        .proven(
            "L23", "serverTrust", by: "ServerTrustTests.credentialAndSpaceCarryTheServerTrust",
            "ServerTrustTests.trustErrorHasTheCodeOfTheLoad",
            "ServerTrustTests.programsOwnAnchorsJudgeTheServer"),
        .proven(
            "L24", "NSURLAuthenticationMethodDefault",
            by: "URLProtectionSpaceTests.protectionSpaceConstantsHaveTheirValues"),
        .proven(
            "L25", "NSURLAuthenticationMethodHTTPBasic",
            by: "URLProtectionSpaceTests.protectionSpaceConstantsHaveTheirValues"),
        .proven(
            "L26", "NSURLAuthenticationMethodHTTPDigest",
            by: "URLProtectionSpaceTests.protectionSpaceConstantsHaveTheirValues"),
        .proven(
            "L27", "NSURLAuthenticationMethodHTMLForm",
            by: "URLProtectionSpaceTests.protectionSpaceConstantsHaveTheirValues"),
        .proven(
            "L28", "NSURLAuthenticationMethodNTLM",
            by: "ConnectionAuthenticationTests.connectionIsAuthenticatedOnce",
            "URLProtectionSpaceTests.protectionSpaceConstantsHaveTheirValues"),
        .proven(
            "L29", "NSURLAuthenticationMethodNegotiate",
            by: "ConnectionAuthenticationTests.rejectedSchemeLeavesTheNextOne",
            "URLProtectionSpaceTests.protectionSpaceConstantsHaveTheirValues"),
        .proven(
            "L30", "NSURLAuthenticationMethodClientCertificate",
            by: "URLProtectionSpaceTests.protectionSpaceConstantsHaveTheirValues"),
        .proven(
            "L31", "NSURLAuthenticationMethodServerTrust",
            by: "URLProtectionSpaceTests.protectionSpaceConstantsHaveTheirValues"),
        .proven(
            "L32", "NSURLProtectionSpaceHTTP, NSURLProtectionSpaceHTTPS, NSURLProtectionSpaceFTP",
            by: "URLProtectionSpaceTests.protectionSpaceConstantsHaveTheirValues"),
        .proven(
            "L33",
            "NSURLProtectionSpaceHTTPProxy, NSURLProtectionSpaceHTTPSProxy, NSURLProtectionSpaceFTPProxy, NSURLProtectionSpaceSOCKSProxy",
            by: "URLProtectionSpaceTests.protectionSpaceConstantsHaveTheirValues"),
        .proven(
            "L34", "URLCredential", by: "URLCredentialTests.credentialIsDecodedFromAnArchive",
            "URLCredentialTests.credentialsDifferInAnyProperty", "URLCredentialTests.descriptionOmitsThePassword"),
        .proven("L35", "init(user:password:persistence:)", by: "URLCredentialTests.credentialHasItsInitialValues"),
        .proven(
            "L36", "init(identity:certificates:persistence:)", by: "SecureLoadingTests.clientCertificateIsSentOnRequest"
        ),
        .proven(
            "L37", "init(trust:)", by: "ServerTrustTests.credentialAndSpaceCarryTheServerTrust",
            "SecureLoadingTests.programsOwnAuthorityDecides"),
        .proven("L38", "identity, certificates", by: "SecureLoadingTests.clientCertificateIsSentOnRequest"),
        .proven("L39", "user, password, hasPassword", by: "URLCredentialTests.credentialHasItsInitialValues"),
        .proven("L40", "persistence", by: "URLCredentialTests.credentialHasItsInitialValues"),
        .proven("L41", "Persistence", by: "URLCredentialTests.persistenceHasFoundationsRawValues"),
        .proven(
            "L42", "URLCredentialStorage",
            by: "URLCredentialStorageTests.permanentCredentialsAreInAFileOfItsOwnerOnly",
            "URLCredentialStorageTests.storageIsSafeFromManyThreads"),
        .proven("L43", "shared", by: "URLCredentialStorageTests.sharedStorageIsOneForTheProgram"),
        .proven("L44", "credentials(for:)", by: "URLCredentialStorageTests.credentialsAreKeptBySpaceAndUser"),
        .proven("L45", "allCredentials", by: "URLCredentialStorageTests.credentialsAreKeptBySpaceAndUser"),
        .proven(
            "L46", "set(_:for:)", by: "URLCredentialStorageTests.credentialsAreKeptBySpaceAndUser",
            "URLCredentialStorageTests.credentialWithoutPersistenceIsNotKept"),
        .proven("L47", "remove(_:for:)", by: "URLCredentialStorageTests.removedCredentialIsNoDefault"),
        .proven(
            "L48", "remove(_:for:options:)",
            by: "URLCredentialStorageTests.synchronizableCredentialIsRemovedOnlyWithItsOption"),
        .proven(
            "L49", "defaultCredential(for:)",
            by: "URLCredentialStorageTests.firstCredentialIsTheDefaultUntilAnotherIsSet"),
        .proven(
            "L50", "setDefaultCredential(_:for:)",
            by: "URLCredentialStorageTests.firstCredentialIsTheDefaultUntilAnotherIsSet"),
        .proven(
            "L51", "getCredentials(for:task:completionHandler:)",
            by: "TaskCredentialTests.taskCredentialsAreSetFoundAndRemoved"),
        .proven("L52", "credentials(for:task:)", by: "TaskCredentialTests.taskCredentialsAreSetFoundAndRemoved"),
        .proven("L53", "set(_:for:task:)", by: "TaskCredentialTests.taskCredentialsAreSetFoundAndRemoved"),
        .proven("L54", "remove(_:for:options:task:)", by: "TaskCredentialTests.taskCredentialsAreSetFoundAndRemoved"),
        .proven(
            "L55", "getDefaultCredential(for:task:completionHandler:)",
            by: "TaskCredentialTests.taskHasADefaultCredential"),
        .proven("L56", "setDefaultCredential(_:for:task:)", by: "TaskCredentialTests.taskHasADefaultCredential"),
        .proven(
            "L57", "NSURLCredentialStorageChanged", by: "URLCredentialStorageTests.notificationIsPostedForChangesOnly"),
        .proven(
            "L58", "NSURLCredentialStorageRemoveSynchronizableCredentials",
            by: "URLCredentialStorageTests.synchronizableCredentialIsRemovedOnlyWithItsOption"),
    ]
}
