extension SurfaceEntry {
    /// Section Q: errors.
    static let errors: [SurfaceEntry] = [
        .proven("Q1", "URLError and its codes", by: "URLErrorTests.errorCodesAreFoundations"),
        .deviation(
            "Q2", "fileOutsideSafeArea",
            because: "The codes of Foundation on Linux are a closed enumeration; the number is there as a constant."),
        .proven(
            "Q3", "keys of the failing URL", by: "SessionTests.invalidateAndCancelCancelsEveryTask",
            "InvalidResponseTests.invalidResponseFailsTheLoad"
        ),
        .proven(
            "Q4", "failingURL, failureURLString", by: "URLErrorTests.failingURLIsReadFromTheUserInfo",
            "InvalidResponseTests.invalidResponseFailsTheLoad",
            "BrokenConnectionTests.connectionToAClosedPortIsRefused"),
        .proven("Q5", "failureURLPeerTrust", by: "ServerTrustTests.credentialAndSpaceCarryTheServerTrust"),
        .proven("Q6", "backgroundTaskCancelledReason", by: "URLErrorTests.cancellationReasonIsReadFromTheUserInfo"),
        .proven("Q7", "networkUnavailableReason", by: "URLErrorTests.networkUnavailableReasonIsReadFromTheUserInfo"),
        .proven(
            "Q8", "downloadTaskResumeData, uploadTaskResumeData", by: "URLErrorTests.resumeDataIsReadFromTheUserInfo",
            "ResumedUploadTests.failedUploadIsResumedByAnotherSession"),
        .proven(
            "Q9", "transport to code", by: "BrokenConnectionTests.connectionToAClosedPortIsRefused",
            "BrokenConnectionTests.unknownNameIsAFailure", "ConnectivityTests.offlineTaskFailsWithoutANetwork",
            "BrokenConnectionTests.incompleteResponseFailsTheTask",
            "SecureLoadingTests.certificateErrorHasItsCode", "InvalidResponseTests.invalidResponseFailsTheLoad"),
    ]
}
