extension SurfaceEntry {
    /// Section C: transfers by async functions, and bytes as they come.
    static let transfers: [SurfaceEntry] = [
        .proven(
            "C1", "data(for:delegate:)", by: "AsyncTransferTests.dataAndResponseAreReturned",
            "AsyncTransferTests.asyncDataReportsContentToItsDelegate",
            "AsyncTransferTests.slowDelegateHoldsTheServerBack",
            "AsyncTransferTests.cancelledSwiftTaskEndsTheTransfer"),
        .proven(
            "C2", "data(from:delegate:)", by: "AsyncTransferTests.dataAndResponseAreReturned",
            "AsyncTransferTests.asyncTransferThrowsTheErrorOfItsTask"),
        .proven("C3", "upload(for:fromFile:delegate:)", by: "AsyncTransferTests.asyncUploadSendsDataAndFiles"),
        .proven(
            "C4", "upload(for:from:delegate:)", by: "AsyncTransferTests.asyncUploadSendsDataAndFiles",
            "AsyncTransferTests.asyncUploadReportsProgressToItsDelegate"),
        .proven(
            "C5", "upload(resumeFrom:delegate:)", by: "ResumedUploadTests.asyncUploadIsResumed",
            "AsyncTransferTests.asyncUploadSendsDataAndFiles"),
        .proven(
            "C6", "download(for:delegate:)", by: "AsyncTransferTests.downloadedFileIsLeftWithTheProgram",
            "AsyncTransferTests.asyncDownloadReportsProgressToItsDelegate"),
        .proven("C7", "download(from:delegate:)", by: "AsyncTransferTests.downloadedFileIsLeftWithTheProgram"),
        .proven(
            "C8", "download(resumeFrom:delegate:)",
            by: "ResumedDownloadTests.brokenDownloadHasResumeData",
            "ResumedDownloadTests.invalidResumeDataIsRefused"),
        .proven(
            "C9", "bytes(for:delegate:)", by: "AsyncBytesTests.bytesComeForARequest",
            "AsyncBytesTests.unreadBytesHoldTheServerBack"),
        .proven(
            "C10", "bytes(from:delegate:)", by: "AsyncBytesTests.bytesBeginWithTheHead",
            "AsyncBytesTests.releasedBytesCancelTheirTask"),
        .proven(
            "C11", "AsyncBytes", by: "AsyncBytesTests.bytesBeginWithTheHead",
            "AsyncBytesTests.errorIsThrownAfterTheReceivedBytes"),
        .proven("C12", "AsyncBytes.task", by: "AsyncBytesTests.bytesEndWithTheTask"),
        .proven(
            "C13", "lines, characters, unicodeScalars", by: "AsyncBytesTests.linesComeFromBytes",
            "AsyncBytesTests.charactersAndScalarsComeFromBytes"),
        .proven(
            "C14", "URL.resourceBytes, URL.lines", by: "AsyncBytesTests.bytesComeForAURL", "SchemeTests.fileIsRead"),
    ]
}
