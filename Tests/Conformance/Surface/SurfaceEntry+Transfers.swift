extension SurfaceEntry {
    /// Section C: transfers by async functions, and bytes as they come.
    static let transfers: [SurfaceEntry] = [
        .proven(
            "C1", "data(for:delegate:)", by: "AsyncTransferTests.giveDataAndResponse",
            "AsyncTransferTests.tellTheirDelegateOfTheContent", "AsyncTransferTests.bringNoMoreThanTheirDelegateTakes",
            "AsyncTransferTests.endWhenTheSwiftTaskIsCancelled"),
        .proven(
            "C2", "data(from:delegate:)", by: "AsyncTransferTests.giveDataAndResponse",
            "AsyncTransferTests.throwWhatATaskFailsWith"),
        .proven("C3", "upload(for:fromFile:delegate:)", by: "AsyncTransferTests.uploadDataAndFiles"),
        .proven(
            "C4", "upload(for:from:delegate:)", by: "AsyncTransferTests.uploadDataAndFiles",
            "AsyncTransferTests.tellTheirDelegateOfAnUploadAndItsAnswer"),
        .proven("C5", "upload(resumeFrom:delegate:)", by: "AsyncTransferTests.uploadDataAndFiles"),
        .proven(
            "C6", "download(for:delegate:)", by: "AsyncTransferTests.leaveADownloadedFileWithTheProgram",
            "AsyncTransferTests.tellTheirDelegateHowADownloadGrows"),
        .proven("C7", "download(from:delegate:)", by: "AsyncTransferTests.leaveADownloadedFileWithTheProgram"),
        .proven(
            "C8", "download(resumeFrom:delegate:)",
            by: "ResumedDownloadTests.handOverWhatGoesOnWhenTheConnectionBreaks",
            "ResumedDownloadTests.refuseWhatIsNoResumeData"),
        .proven(
            "C9", "bytes(for:delegate:)", by: "AsyncBytesTests.comeForARequest",
            "AsyncBytesTests.holdTheServerBackWhereTheyAreNotRead"),
        .proven(
            "C10", "bytes(from:delegate:)", by: "AsyncBytesTests.beginWhenTheHeadIsThere",
            "AsyncBytesTests.endTheTaskWhenNobodyReadsThem"),
        .proven(
            "C11", "AsyncBytes", by: "AsyncBytesTests.beginWhenTheHeadIsThere",
            "AsyncBytesTests.throwTheErrorInTheMiddle"),
        .proven("C12", "AsyncBytes.task", by: "AsyncBytesTests.endWithTheTask"),
        .proven(
            "C13", "lines, characters, unicodeScalars", by: "AsyncBytesTests.makeLines",
            "AsyncBytesTests.makeCharactersAndScalars"),
        .proven(
            "C14", "URL.resourceBytes, URL.lines", by: "AsyncBytesTests.areThereForAURLAlone", "SchemeTests.readFiles"),
    ]
}
