extension SurfaceEntry {
    /// Of sections E and J, what needs no session.
    static let choices: [SurfaceEntry] = [
        .open(
            "E18", "URLSessionTask.State",
            because: "The values are there; the session is still to name them as its own."),
        .open("E24", "defaultPriority", because: "The values are there; the session is still to name them as its own."),
        .open("E25", "lowPriority", because: "The values are there; the session is still to name them as its own."),
        .open("E26", "highPriority", because: "The values are there; the session is still to name them as its own."),
        .open(
            "J1", "AuthChallengeDisposition",
            because: "The values are there; the session is still to name them as its own."),
        .open(
            "J4", "ResponseDisposition", because: "The values are there; the session is still to name them as its own."),
        .open("J5", "becomeDownload", because: "The values are there; the session is still to name them as its own."),
        .open("J6", "becomeStream", because: "The values are there; the session is still to name them as its own."),
        .open(
            "J7", "DelayedRequestDisposition",
            because: "The values are there; the session is still to name them as its own."),
        .proven(
            "J8", "NSURLSessionTransferSizeUnknown",
            by: "URLSessionConfigurationTests.numberTheirChoicesAsFoundationDoes"),
        .proven("J9", "NSURLSessionDownloadTaskResumeData", by: "URLErrorTests.carryWhatATransferGoesOnWith"),
        .proven("J10", "NSURLSessionUploadTaskResumeData", by: "URLErrorTests.carryWhatATransferGoesOnWith"),
    ]
}
