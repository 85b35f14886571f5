extension SurfaceEntry {
    /// Section G: stream tasks.
    static let streams: [SurfaceEntry] = [
        .proven(
            "G1", "URLSessionStreamTask", by: "StreamTaskTests.streamTaskReadsBytesOfItsPeer",
            "StreamTaskTests.endWithTheirConnection", "StreamDirectionTests.completeWhenBothAreClosed"),
        .proven(
            "G2", "readData(ofMinLength:maxLength:timeout:completionHandler:)",
            by: "StreamTaskTests.waitForTheLeastThatAReadWants", "StreamTaskTests.giveLessAtTheEnd",
            "StreamTaskTests.letAReadTimeOutWithAllThatWaitBehindIt"),
        .proven(
            "G3", "readData(ofMinLength:maxLength:timeout:)", by: "StreamTaskTests.streamTaskReadsBytesOfItsPeer",
            "StreamTaskTests.giveAReadThatWasWithdrawnToTheNext"),
        .proven(
            "G4", "write(_:timeout:completionHandler:)", by: "StreamTaskTests.operationsBeforeTheConnectionRunInOrder",
            "StreamTaskTests.letAWriteTimeOut"),
        .proven("G5", "write(_:timeout:)", by: "StreamTaskTests.streamTaskReadsBytesOfItsPeer"),
        .proven("G6", "captureStreams()", by: "CapturedStreamTests.capturedInputStartsWithBufferedBytes"),
        .proven(
            "G7", "closeWrite()", by: "StreamDirectionTests.closeWriteFollowsQueuedWrites",
            "SecureStreamTests.readsToTheEndOfAServerThatIsGoneAlready"),
        .proven("G8", "closeRead()", by: "StreamDirectionTests.closeReadFollowsQueuedReads"),
        .proven(
            "G9", "startSecureConnection()", by: "SecureStreamTests.carriesOnInSecret",
            "SecureStreamTests.endsTheTaskWhereTheServerIsNotTrusted",
            "SecureStreamTests.endsTheTaskWhereTheDelegateGivesUp",
            "SecureStreamTests.showsACertificateThatTheDelegateChose"),
        .proven("G10", "stopSecureConnection()", by: "SecureStreamTests.isNotTakenOffAgain"),
    ]

    /// Section H: WebSocket tasks.
    static let webSockets: [SurfaceEntry] = [
        .proven(
            "H1", "URLSessionWebSocketTask", by: "WebSocketTaskTests.sendAndReceiveInOrder",
            "WebSocketOpeningTests.followsRedirects", "WebSocketOpeningTests.answersAChallengeByBasic",
            "WebSocketOpeningTests.answersAChallengeByDigest", "WebSocketOpeningTests.carriesCookiesBothWays"),
        .proven("H2", "Message", by: "WebSocketTaskTests.sendAndReceiveInOrder"),
        .proven("H3", "NSURLSessionWebSocketMessage", by: "WebSocketValueTests.messagesAreObjectsToo"),
        .proven(
            "H4", "send(_:completionHandler:)", by: "WebSocketTaskTests.sendAndReceiveInOrder",
            "WebSocketTaskTests.answerOnTheDelegateQueue"),
        .proven("H5", "send(_:)", by: "WebSocketTaskTests.sendAndReceiveInOrder"),
        .proven(
            "H6", "receive(completionHandler:)", by: "WebSocketTaskTests.sendAndReceiveInOrder",
            "WebSocketTaskTests.joinFragmentsHoweverTheyCome",
            "WebSocketTaskTests.messagesAreQueuedUntilReceived"),
        .proven("H7", "receive()", by: "WebSocketTaskTests.loseNoMessageByACancelledReceive"),
        .proven(
            "H8", "sendPing(pongReceiveHandler:)", by: "WebSocketTaskTests.answerPingsInTheirOrderOnceEach",
            "WebSocketTaskTests.unsolicitedPongsAreIgnored"),
        .proven("H9", "sendPing()", by: "WebSocketTaskTests.answerPingsInTheirOrderOnceEach"),
        .proven(
            "H10", "cancel(with:reason:)", by: "WebSocketClosingTests.closeWithACodeAndAReason",
            "WebSocketClosingTests.sendNoCodeThatIsNotForTheWire",
            "WebSocketClosingTests.ownCloseIsReportedWhenTheServerDisconnects"),
        .proven("H11", "cancel()", by: "WebSocketClosingTests.cancelWithoutWaiting"),
        .proven(
            "H12", "maximumMessageSize", by: "WebSocketClosingTests.refuseAMessageThatIsTooLong",
            "WebSocketClosingTests.holdMessagesToTheSizeThatWasSet"),
        .proven(
            "H13", "closeCode", by: "WebSocketClosingTests.closeCodeAndReasonOfTheServerAreReported",
            "WebSocketClosingTests.failWhenTheConnectionIsLost"),
        .proven("H14", "closeReason", by: "WebSocketClosingTests.closeCodeAndReasonOfTheServerAreReported"),
        .proven("H15", "CloseCode", by: "WebSocketValueTests.closeCodesAreOpen"),
        .proven(
            "H16", "the opening handshake", by: "WebSocketOpeningTests.unofferedSubprotocolOrExtensionIsRefused",
            "WebSocketOpeningTests.refusedOpeningHasTheStatus"),
        .proven(
            "H17", "after the end", by: "WebSocketClosingTests.failWhenTheConnectionIsLost",
            "WebSocketOpeningTests.failsWhereTheServerDropsIt", "WebSocketClosingTests.messagesBeforeTheEndAreDelivered"
        ),
    ]

    /// The end of section I: the delegates of both.
    static let connectionDelegates: [SurfaceEntry] = [
        .proven("I35", "URLSessionStreamDelegate", by: "StreamDirectionTests.completeWhenBothAreClosed"),
        .proven("I36", "readClosedFor", by: "StreamDirectionTests.readClosedIsReportedWithoutARead"),
        .proven("I37", "writeClosedFor", by: "StreamDirectionTests.closeWriteFollowsQueuedWrites"),
        .deviation(
            "I38", "betterRouteDiscoveredFor",
            because: "Never called: routes of the network are not watched."),
        .proven(
            "I39", "didBecome inputStream:outputStream:",
            by: "CapturedStreamTests.capturedInputStartsWithBufferedBytes"),
        .proven(
            "I40", "URLSessionWebSocketDelegate", by: "WebSocketClosingTests.closeCodeAndReasonOfTheServerAreReported"),
        .proven("I41", "didOpenWithProtocol", by: "WebSocketOpeningTests.offersSubprotocolsAsAList"),
        .proven(
            "I42", "didCloseWith", by: "WebSocketClosingTests.closeCodeAndReasonOfTheServerAreReported",
            "WebSocketClosingTests.closeFrameWithoutACodeIsReported"),
    ]
}
