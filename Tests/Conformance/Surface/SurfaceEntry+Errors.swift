extension SurfaceEntry {
    /// Section Q: errors.
    static let errors: [SurfaceEntry] = [
        .proven("Q1", "URLError and its codes", by: "URLErrorTests.haveAllTheirCodesFromFoundation"),
        .deviation(
            "Q2", "fileOutsideSafeArea",
            because: "The codes of Foundation on Linux are a closed enumeration; the number is there as a constant."),
        .open(
            "Q3", "keys of the failing URL", because: "The keys are Foundation's own; the engine is still to fill them."
        ),
        .open(
            "Q4", "failingURL, failureURLString",
            because: "They are Foundation's own; the engine is still to fill them."),
        .proven("Q5", "failureURLPeerTrust", by: "ServerTrustTests.isWhatACredentialAndASpaceCarry"),
        .proven("Q6", "backgroundTaskCancelledReason", by: "URLErrorTests.tellWhyATaskWasCancelled"),
        .proven("Q7", "networkUnavailableReason", by: "URLErrorTests.tellWhyThereIsNoNetwork"),
        .proven("Q8", "downloadTaskResumeData, uploadTaskResumeData", by: "URLErrorTests.carryWhatATransferGoesOnWith"),
        .open("Q9", "transport to code", because: "The engine is still to be written."),
    ]
}
