extension SurfaceEntry {
    /// Section J: what delegates choose among, and constants.
    static let choices: [SurfaceEntry] = [
        .proven("J1", "AuthChallengeDisposition", by: "TaskStateTests.taskStatesHaveFoundationsRawValues"),
        .proven("J2", "useCredential without one", by: "BasicAuthenticationTests.taskContinuesWithoutACredential"),
        .proven(
            "J3", "rejectProtectionSpace",
            by: "BasicAuthenticationTests.nextSchemeIsTriedAfterARejectedProtectionSpace",
            "BasicAuthenticationTests.refusalIsGivenWhenEverySchemeIsRejected"),
        .proven("J4", "ResponseDisposition", by: "TaskStateTests.taskStatesHaveFoundationsRawValues"),
        .proven("J5", "becomeDownload", by: "ResponseDispositionTests.responseCanBecomeADownload"),
        .proven(
            "J6", "becomeStream", by: "ResponseDispositionTests.responseAfterAnUpgradeCanBecomeAStream",
            "BecomingStreamTests.streamContinuesOnTheUpgradedConnection",
            "BecomingStreamTests.streamGetsContentAsItIsOnTheWire",
            "ResponseDispositionTests.responseWithoutAConnectionCannotBecomeAStream"),
        .proven("J7", "DelayedRequestDisposition", by: "TaskStateTests.taskStatesHaveFoundationsRawValues"),
        .proven(
            "J8", "NSURLSessionTransferSizeUnknown",
            by: "URLSessionConfigurationTests.configurationEnumsHaveFoundationsRawValues"),
        .proven(
            "J9", "NSURLSessionDownloadTaskResumeData", by: "URLErrorTests.resumeDataIsReadFromTheUserInfo",
            "ResumedDownloadTests.brokenDownloadHasResumeData"),
        .proven(
            "J10", "NSURLSessionUploadTaskResumeData", by: "URLErrorTests.resumeDataIsReadFromTheUserInfo",
            "ResumedUploadTests.failedUploadIsResumedByAnotherSession"),
    ]
}
