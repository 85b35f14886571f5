extension SurfaceEntry {
    /// Section J: what delegates choose among, and constants.
    static let choices: [SurfaceEntry] = [
        .proven("J1", "AuthChallengeDisposition", by: "TaskStateTests.numberTheirValuesAsFoundationDoes"),
        .proven("J2", "useCredential without one", by: "BasicAuthenticationTests.goesOnWithoutACredential"),
        .proven(
            "J3", "rejectProtectionSpace", by: "BasicAuthenticationTests.triesTheNextSchemeWhereOneIsRejected",
            "BasicAuthenticationTests.givesTheRefusalWhereEverySchemeIsRejected"),
        .proven("J4", "ResponseDisposition", by: "TaskStateTests.numberTheirValuesAsFoundationDoes"),
        .proven("J5", "becomeDownload", by: "ResponseDispositionTests.canBeAFile"),
        .proven(
            "J6", "becomeStream", by: "ResponseDispositionTests.canBeAStreamBehindAnUpgrade",
            "BecomingStreamTests.goOnWithTheConnectionThatTheServerUpgraded"),
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
