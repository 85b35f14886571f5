extension Requirement {
    /// RFC 7692: compression of messages.
    static let permessageDeflate = Self.deflateNegotiation + Self.deflateMessages

    private static let deflateNegotiation: [Requirement] = [
        .proven(
            "RFC 7692 §5", "A server accepts one offer at most, and declines what it cannot accept.",
            by: "PermessageDeflateTests.offerIsAnsweredByThePolicy"),
        .proven(
            "RFC 7692 §5.2", "A client fails the connection where the response answers none of its offers.",
            by: "PermessageDeflateTests.responseIsMatchedWithItsOffer",
            "ClientHandshakeTests.responseThatBreaksARuleFailsTheConnection"),
        .proven(
            "RFC 7692 §7.1", "A server declines an offer with an unknown, repeated or impossible parameter.",
            by: "PermessageDeflateTests.malformedOfferIsDeclined"),
        .proven(
            "RFC 7692 §7.1", "A client fails the connection on a response with such a parameter.",
            by: "PermessageDeflateTests.malformedResponseIsRefused",
            "ClientHandshakeTests.responseThatBreaksARuleFailsTheConnection"),
        .proven(
            "RFC 7692 §7.1.1.1", "server_no_context_takeover has no value, and accepting it means to repeat it.",
            by: "PermessageDeflateTests.malformedOfferIsDeclined",
            "PermessageDeflateTests.responseIsMatchedWithItsOffer",
            "PermessageDeflateTests.everyAcceptedOfferIsAnswered"),
        .proven(
            "RFC 7692 §7.1.1.1",
            "A client can read the messages of a server that keeps its context against its request.",
            by: "ClientHandshakeTests.serverMayKeepItsContextAgainstTheRequest",
            "test_task_client.py::test_offered_parameters_of_the_client_bind_it_without_being_repeated"),
        .proven(
            "RFC 7692 §7.1.1.2", "client_no_context_takeover has no value and may be asked for unasked.",
            by: "PermessageDeflateTests.malformedOfferIsDeclined",
            "PermessageDeflateTests.responseIsMatchedWithItsOffer"),
        .proven(
            "RFC 7692 §7.1.1.2",
            "A client keeps to the limits that it offered although the response is silent on them.",
            by: "PermessageDeflateTests.clientKeepsItsOfferedLimitsForAnyResponse"),
        .proven(
            "RFC 7692 §7.1.2", "Window bits are a decimal number from 8 to 15 without leading zeroes.",
            by: "PermessageDeflateTests.malformedOfferIsDeclined",
            "PermessageDeflateTests.malformedResponseIsRefused"),
        .proven(
            "RFC 7692 §7.1.2.1", "server_max_window_bits is answered with the same or a smaller value.",
            by: "PermessageDeflateTests.responseIsMatchedWithItsOffer",
            "PermessageDeflateTests.offerIsAnsweredByThePolicy"),
        .proven(
            "RFC 7692 §7.1.2.1", "The window agreed on is not left when compressing, 8 bits included.",
            by: "DeflaterTests.deflaterNeverReachesBackFurtherThanItsWindow",
            "DeflaterTests.tooSmallWindowFailsTheInflater"),
        .proven(
            "RFC 7692 §7.1.2.2", "client_max_window_bits stands in a response only if the client offered it.",
            by: "PermessageDeflateTests.responseIsMatchedWithItsOffer",
            "PermessageDeflateTests.offerIsAnsweredByThePolicy"),
    ]

    private static let deflateMessages: [Requirement] = [
        .proven(
            "RFC 7692 §6", "RSV1 is set on the first frame of a message only, and never on control frames.",
            by: "FrameRuleTests.compressionBitOnAContinuationIsRejected",
            "FrameRuleTests.compressedControlFrameIsRejected",
            "DeflatingTests.onlyTheFirstFrameOfACompressedMessageHasRSV1",
            "test_conformance_compression.py::test_rsv1_on_a_continuation_fails_the_connection",
            "test_conformance_compression.py::test_rsv1_on_a_control_frame_fails_the_connection"),
        .proven(
            "RFC 7692 §6", "Compressed and plain messages may follow each other.",
            by: "InflatingTests.uncompressedMessagesAmongCompressedOnesAreRead",
            "test_conformance_compression.py::test_uncompressed_messages_between_compressed_ones_are_echoed"),
        .proven(
            "RFC 7692 §7.2.1", "A message ends at a byte boundary, without the four bytes of the empty block.",
            by: "DeflaterTests.exampleOfTheRFCIsCompressed", "DeflaterTests.flushMakesAllInputSoFarReadable",
            "DeflatingTests.messageIsInflatedForEveryWindowAndTakeover"),
        .proven(
            "RFC 7692 §7.2.1", "A sender refers to earlier messages only where that was agreed.",
            by: "DeflatingTests.earlierMessagesAreReferencedOnlyWithContextTakeover"),
        .proven(
            "RFC 7692 §7.2.2", "A receiver keeps its window between messages unless the sender promised not to use it.",
            by: "InflatingTests.slidingWindowIsSharedBetweenMessages",
            "InflatingTests.contextTakeoverIsTheSendersDirectionOnly"),
        .deviation(
            "RFC 7692 §7.1.2.1", "A sender that reaches back further than its window is not understood.",
            because:
                "zlib notices it only where the distance leaves what it was given room for at once, so such a message "
                + "is inflated or refused as its bytes arrive. No sender that keeps its promise is concerned."),
        .deviation(
            "RFC 7692 §7.2.1", "Compressed data is one byte at least, and ends with an empty block.",
            because:
                "An empty payload, and one that ends with a last block, are taken as whole although the sender forgot "
                + "the empty block: nothing is missing. See InflatingTests.finalBlockWithoutAnEmptyOneIsInflated."),
        .proven(
            "RFC 7692 §7.2.2", "A receiver puts the four bytes back and inflates.",
            by: "InflatingTests.examplesOfTheRFCAreInflated",
            "InflaterTests.permessageDeflateMessagesOfTheRFCAreInflated"),
        .proven(
            "RFC 7692 §7.2.3", "Any kind of block is understood, and a last block ends nothing.",
            by: "InflatingTests.examplesOfTheRFCAreInflated", "InflatingTests.windowIsKeptAfterAFinalBlock",
            "InflaterTests.permessageDeflateMessagesOfTheRFCAreInflated",
            "test_conformance_compression.py::test_a_message_with_a_final_deflate_block_is_inflated"),
        .proven(
            "RFC 7692 §7.2.3.6", "An empty message is one byte long.",
            by: "DeflatingTests.emptyMessageOfTheRFCIsSent", "InflatingTests.emptyMessagesAreInflated",
            "test_conformance_compression.py::test_an_empty_compressed_message_is_echoed"),
        .proven(
            "RFC 7692 §7.2.2", "Bytes that do not inflate fail the connection.",
            by: "InflatingTests.corruptDataIsRejected", "InflaterTests.corruptBytesHaveADescribedError",
            "test_conformance_compression.py::test_an_invalid_deflate_stream_fails_the_connection"),
        .proven(
            "RFC 7692 §8", "A small message that inflates to a large one costs no more than the limit.",
            by: "InflatingTests.bombIsInflatedInPiecesOf64KiB", "InflatingTests.inflatedSizeCountsAgainstTheLimit",
            "InflaterTests.outputOfABombIsBounded"),
    ]
}
