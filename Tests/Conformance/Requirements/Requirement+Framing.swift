extension Requirement {
    /// RFC 6455 §5, §6, §8 and §10: frames, messages, text.
    static let framing = Self.frameHeader + Self.masking + Self.fragmentation + Self.controlFrames + Self.messages

    private static let frameHeader: [Requirement] = [
        .proven(
            "RFC 6455 §5.1", "A server closes the connection on a frame that is not masked.",
            by: "FrameRuleTests.refusesAnUnmaskedFrameFromAClient",
            "test_conformance_framing.py::test_a_frame_masked_like_the_other_side_fails_the_connection"),
        .proven(
            "RFC 6455 §5.1", "A client closes the connection on a masked frame.",
            by: "FrameRuleTests.refusesAMaskedFrameFromAServer",
            "test_conformance_framing.py::test_a_frame_masked_like_the_other_side_fails_the_connection"),
        .proven(
            "RFC 6455 §5.2", "A reserved bit without a meaning fails the connection.",
            by: "FrameRuleTests.reservedBitsWithoutExtensionAreRefused",
            "FrameRuleTests.refusesTheOtherReservedBitsUnderCompression",
            "FrameScannerTests.refusesReservedBitsThatWereNotAgreed"),
        .proven(
            "RFC 6455 §5.2", "An unknown opcode fails the connection.",
            by: "FrameRuleTests.refusesReservedOpcodes",
            "test_conformance_framing.py::test_a_reserved_opcode_fails_the_connection"),
        .proven(
            "RFC 6455 §5.2", "The highest bit of a length of 64 bits is 0.",
            by: "FrameRuleTests.refusesALengthWithItsHighestBitSet", "FrameRuleTests.takesTheLongestLengthThereIs"),
        .proven(
            "RFC 6455 §5.2", "A length is written in the fewest bytes; one that is not fails the connection.",
            by: "FrameExampleTests.writesTheShortestLengthThatFits",
            "FrameRuleTests.refusesALengthInMoreBytesThanNeeded", "FrameRuleTests.takesEveryFormOfLengthAtItsEdges"),
        .proven(
            "RFC 6455 §5.7", "The examples are read and written byte for byte.",
            by: "FrameExampleTests.readsAnUnmaskedTextMessage", "FrameExampleTests.readsAMaskedTextMessage",
            "FrameExampleTests.readsAFragmentedUnmaskedTextMessage",
            "FrameExampleTests.readsAnUnmaskedPingAndItsMaskedPong", "FrameExampleTests.reads256BytesOfBinary",
            "FrameExampleTests.reads64KiBOfBinary", "FrameExampleTests.writesTheExamplesOfTheRFC"),
        .proven(
            "RFC 6455 §5.8", "Extensions are used only where the opening handshake agreed on them.",
            by: "DeflatingTests.compressesNothingThatWasNotAgreed",
            "FrameRuleTests.reservedBitsWithoutExtensionAreRefused"),
    ]

    private static let masking: [Requirement] = [
        .proven(
            "RFC 6455 §5.1", "A client masks all frames, and a server none.",
            by: "FrameExampleTests.writesTheExamplesOfTheRFC", "FrameExampleTests.writesTheShortestLengthThatFits",
            "test_bridge_kinds.py::test_the_client_side_masks_and_asks_as_the_rfc_wants"),
        .proven(
            "RFC 6455 §5.3", "The mask bit is set on a masked frame.",
            by: "FrameExampleTests.writesTheShortestLengthThatFits"),
        .proven(
            "RFC 6455 §5.3", "Every frame has a fresh key.", by: "FrameExampleTests.takesAFreshKeyForEveryFrame",
            "test_frame_relay.py::test_a_client_does_not_choose_what_goes_over_the_wire",
            "test_bridge_kinds.py::test_the_client_side_masks_and_asks_as_the_rfc_wants"),
        .unproven(
            "RFC 6455 §5.3", "Keys come from a strong source of entropy and cannot be foretold.",
            because: "No test can show it: the engine takes keys from a generator that its caller must choose well."),
        .proven(
            "RFC 6455 §6.2", "A server removes the mask.", by: "FrameExampleTests.readsAMaskedTextMessage",
            "PausingTests.seesTheSameAsOneThatNeverStops"),
    ]

    private static let fragmentation: [Requirement] = [
        .proven(
            "RFC 6455 §5.4", "Control frames are not fragmented.",
            by: "FrameRuleTests.refusesAFragmentedControlFrame"),
        .proven(
            "RFC 6455 §5.4", "Fragments are handed on in their order.",
            by: "FrameRuleTests.letsControlFramesComeBetweenFragments", "FuzzTests.giveTheSameEventsOrOneViolation"),
        .proven(
            "RFC 6455 §5.4", "Fragments of different messages are not mixed.",
            by: "FrameRuleTests.refusesANewMessageBeforeTheLastOneWasFinished",
            "FrameRuleTests.refusesAContinuationOfNothing"),
        .proven(
            "RFC 6455 §5.4", "Control frames are handled in the middle of a fragmented message.",
            by: "FrameRuleTests.letsControlFramesComeBetweenFragments", "InflatingTests.readsMaskedExamples",
            "test_conformance_framing.py::test_a_ping_between_fragments_is_answered_before_the_message"),
        .proven(
            "RFC 6455 §5.4", "Fragmented and unfragmented messages are received.",
            by: "FrameExampleTests.readsAFragmentedUnmaskedTextMessage", "FrameRuleTests.passesEmptyFramesOn"),
        .proven(
            "RFC 6455 §5.4", "An intermediary changes no fragmentation where it does not know the meaning of the bits.",
            by: "FrameScannerTests.findsEveryFrameAndForwardsEveryByte", "FrameScannerTests.letsAgreedBitsPass",
            "FrameForwarderTests.everyFrameLeavesAsItCameInAnyCut",
            "test_frame_relay.py::test_fragments_stay_as_they_are_over_single_bytes"),
        .proven(
            "RFC 6455 §5.4", "All fragments of a message are of the type of the first.",
            by: "FrameScannerTests.marksThePiecesOfAFrame", "FrameExampleTests.readsAFragmentedUnmaskedTextMessage"),
    ]

    private static let controlFrames: [Requirement] = [
        .proven(
            "RFC 6455 §5.5", "Control frames have 125 bytes at most.",
            by: "FrameRuleTests.refusesALongControlFrame", "FrameRuleTests.takesAControlFrameOf125Bytes"),
        .proven(
            "RFC 6455 §5.5.2", "A ping is answered with a pong, unless a Close came before.",
            by: "test_conformance_framing.py::test_a_ping_is_answered_with_its_payload",
            "test_conformance_closing.py::test_nothing_behind_a_close_is_answered"),
        .proven(
            "RFC 6455 §5.5.3", "A pong has the payload of its ping; one may stand for several pings.",
            by: "test_conformance_framing.py::test_ten_pings_are_answered_in_order",
            "PendingPingsTests.completesPingsInTheirOrder", "PendingPingsTests.takesAPongForEveryEarlierPingToo"),
        .proven(
            "RFC 6455 §5.5.3", "An unsolicited pong is not answered.",
            by: "PendingPingsTests.ignoresAnUnsolicitedPong",
            "test_conformance_framing.py::test_an_unsolicited_pong_is_ignored"),
    ]

    private static let messages: [Requirement] = [
        .proven(
            "RFC 6455 §6.1", "The first frame has the opcode of the type, the last the bit that says so.",
            by: "FrameExampleTests.writesTheExamplesOfTheRFC",
            "DeflatingTests.marksTheFirstFrameOfACompressedMessageAlone"),
        .proven(
            "RFC 6455 §6.2", "What arrives is read as frames, whatever its cuts; behind a last frame a message begins.",
            by: "FuzzTests.giveTheSameEventsOrOneViolation", "FuzzTests.replaysTheCorpus",
            "FrameRuleTests.countsEveryMessageAfresh"),
        .proven(
            "RFC 6455 §5.6", "A text message as a whole is UTF-8; a frame may end inside a character.",
            by: "TextTests.readsCharactersCutByFragmentsAnywhere", "TextTests.failsWhereAMessageEndsInsideACharacter"),
        .proven(
            "RFC 6455 §8.1", "Text that is not UTF-8 fails the connection.", by: "TextTests.failsAtTheVeryByte",
            "TextTests.failsAtTheVeryByteAcrossFragments", "CloseFrameTests.refusesAReasonThatIsNotText",
            "InflatingTests.checksTextAfterInflating"),
        .proven(
            "RFC 6455 §10.4", "Limits protect from frames and messages too large.",
            by: "FrameRuleTests.refusesALongMessageFromItsHeaderAlone", "FrameRuleTests.countsAllFragmentsOfAMessage",
            "InflatingTests.countsAMessageAfterInflation", "InflatingTests.spends64KiBAtATimeOnABomb",
            "FrameScannerTests.refusesALongMessageFromItsHeaderAlone"),
    ]
}
