extension SurfaceEntry {
    /// Section J: what delegates choose among, and constants.
    static let choices: [SurfaceEntry] = [
        .proven("J1", "AuthChallengeDisposition", by: "TaskStateTests.numberTheirValuesAsFoundationDoes"),
        .proven("J2", "useCredential without one", by: "BasicAuthenticationTests.taskGoesOnWithoutACredential"),
        .proven(
            "J3", "rejectProtectionSpace", by: "BasicAuthenticationTests.triesTheNextSchemeWhereOneIsRejected",
            "BasicAuthenticationTests.refusalIsGivenWhenEverySchemeIsRejected"),
        .proven("J4", "ResponseDisposition", by: "TaskStateTests.numberTheirValuesAsFoundationDoes"),
        .proven("J5", "becomeDownload", by: "ResponseDispositionTests.responseCanBecomeADownload"),
        .proven(
            "J6", "becomeStream", by: "ResponseDispositionTests.responseAfterAnUpgradeCanBecomeAStream",
            "BecomingStreamTests.streamGoesOnWithTheUpgradedConnection"),
        .proven("J7", "DelayedRequestDisposition", by: "TaskStateTests.numberTheirValuesAsFoundationDoes"),
        .proven(
            "J8", "NSURLSessionTransferSizeUnknown",
            by: "URLSessionConfigurationTests.numberTheirChoicesAsFoundationDoes"),
        .proven(
            "J9", "NSURLSessionDownloadTaskResumeData", by: "URLErrorTests.resumeDataIsReadFromTheUserInfo",
            "ResumedDownloadTests.brokenDownloadHasResumeData"),
        .proven("J10", "NSURLSessionUploadTaskResumeData", by: "URLErrorTests.resumeDataIsReadFromTheUserInfo"),
    ]
}
