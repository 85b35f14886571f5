extension Requirement {
    /// RFC 6455 §3, §4, §9 and §11.3: the opening handshake.
    static let openingHandshake = Self.clientRequest + Self.clientJudgement + Self.serverJudgement + Self.serverAnswer

    private static let clientRequest: [Requirement] = [
        .proven(
            "RFC 6455 §3", "Fragment identifiers are not used; a '#' is escaped.",
            by: "ClientHandshakeTests.invalidRequestFieldIsRefused",
            "ServerHandshakeTests.refusalHasTheStatusOfItsReason"),
        .proven(
            "RFC 6455 §4.1", "The request is a valid HTTP request, a GET, of at least HTTP/1.1.",
            by: "ClientHandshakeTests.exampleRequestOfTheRFCIsWritten",
            "ClientHandshakeTests.anyInputGivesOneRequestWithoutForeignLines"),
        .proven(
            "RFC 6455 §4.1", "The target is the resource name, with its query.",
            by: "ClientHandshakeTests.clientsRequestIsAcceptedByTheServer"),
        .proven(
            "RFC 6455 §4.1", "Host holds the host, and the port where it is not the usual one.",
            by: "ClientHandshakeTests.hostFieldIsWrittenAsInURLs"),
        .proven(
            "RFC 6455 §4.1", "There are Upgrade: websocket, Connection: Upgrade and Sec-WebSocket-Version: 13.",
            by: "ClientHandshakeTests.exampleRequestOfTheRFCIsWritten"),
        .proven(
            "RFC 6455 §4.1", "Sec-WebSocket-Key is a nonce of 16 bytes in Base64.",
            by: "ClientHandshakeTests.exampleRequestOfTheRFCIsWritten",
            "Base64Tests.examplesOfTheRFCAreEncodedAndDecoded"),
        .proven(
            "RFC 6455 §4.1", "The subprotocols are tokens, each once, in order of preference.",
            by: "ClientHandshakeTests.invalidRequestFieldIsRefused"),
        .proven(
            "RFC 6455 §4.1", "A TLS handshake that fails, fails the connection before anything is sent over it.",
            by: "test_tls.py::test_a_target_with_a_wrong_certificate_receives_no_data"),
        .proven(
            "RFC 6455 §4.1", "TLS names the host that is asked for (SNI).",
            by: "test_tls.py::test_the_server_name_of_a_target_is_sent"),
        .proven(
            "RFC 6455 §4.1", "Nothing follows the request before its answer is there.",
            by: "test_ends.py::test_a_websocket_target_receives_no_bytes_after_the_request_before_its_response"),
        .deviation(
            "RFC 6455 §4.1", "At most one connection to the same address is in the opening handshake at a time.",
            because:
                "Every client of a gateway has a connection of its own upstream; to serve them one after the other "
                + "would let one slow handshake hold up all others. Limits of the listener bound their number instead."),
    ]

    private static let clientJudgement: [Requirement] = [
        .proven(
            "RFC 6455 §4.1", "A status other than 101 is treated as HTTP has it, and opens nothing.",
            by: "ClientHandshakeTests.headOfARefusalIsReturned"),
        .proven(
            "RFC 6455 §4.1", "Without Upgrade: websocket (in any case) the connection fails.",
            by: "ClientHandshakeTests.responseThatBreaksARuleFailsTheConnection",
            "ClientHandshakeTests.validResponseOpensWithTheAcceptedParameters"),
        .proven(
            "RFC 6455 §4.1", "Without the token Upgrade (in any case) in Connection the connection fails.",
            by: "ClientHandshakeTests.responseThatBreaksARuleFailsTheConnection"),
        .proven(
            "RFC 6455 §4.1", "With a missing or wrong Sec-WebSocket-Accept the connection fails.",
            by: "ClientHandshakeTests.responseThatBreaksARuleFailsTheConnection",
            "AcceptKeyTests.keyOfTheRFCHasItsValue"),
        .proven(
            "RFC 6455 §4.1", "An extension that was not asked for fails the connection.",
            by: "ClientHandshakeTests.unofferedExtensionIsRefused"),
        .proven(
            "RFC 6455 §4.1", "A subprotocol that was not asked for fails the connection.",
            by: "ClientHandshakeTests.responseThatBreaksARuleFailsTheConnection"),
        .proven(
            "RFC 6455 §11.3.4", "Sec-WebSocket-Protocol stands in a response once at most.",
            by: "ClientHandshakeTests.responseThatBreaksARuleFailsTheConnection"),
    ]

    private static let serverJudgement: [Requirement] = [
        .proven(
            "RFC 6455 §4.2.1", "A request that is not what the section describes gets an HTTP error.",
            by: "ServerHandshakeTests.refusalHasTheStatusOfItsReason",
            "RequestParserTests.malformedRequestIsRefused"),
        .proven(
            "RFC 6455 §4.2.1", "A GET of HTTP/1.1 or higher whose target is a path or an absolute address.",
            by: "ServerHandshakeTests.refusalHasTheStatusOfItsReason",
            "ServerHandshakeTests.targetIsSplitIntoPathAndQuery"),
        .proven(
            "RFC 6455 §4.2.1",
            "Host, Upgrade, Connection, a key of 16 bytes and version 13 are there, tokens in any case.",
            by: "ServerHandshakeTests.refusalHasTheStatusOfItsReason",
            "ServerHandshakeTests.requestWithinTheRulesIsAccepted"),
        .proven(
            "RFC 6455 §4.2.1", "Field names have no case.", by: "HTTPFieldsTests.fieldNameIsFoundInAnyCase"),
        .proven(
            "RFC 6455 §4.2.2", "Another version is answered with 426 and Sec-WebSocket-Version.",
            by: "ServerHandshakeTests.refusalNamesTheSupportedVersionAndMethod"),
        .proven(
            "RFC 6455 §4.2.2", "An origin that is not served is answered with an error such as 403.",
            by: "test_opening_handshake.py::test_an_invalid_request_is_refused_with_its_status"),
        .proven(
            "RFC 6455 §11.3.1", "Sec-WebSocket-Key stands in a request once at most.",
            by: "ServerHandshakeTests.refusalHasTheStatusOfItsReason"),
        .proven(
            "RFC 6455 §11.3.5", "Sec-WebSocket-Version stands in a request once at most.",
            by: "ServerHandshakeTests.refusalHasTheStatusOfItsReason"),
        .proven(
            "RFC 6455 §11.3.2", "Sec-WebSocket-Extensions and -Protocol may be spread over several fields.",
            by: "ServerHandshakeTests.firstSupportedSubprotocolOfTheClientIsChosen",
            "ExtensionGrammarTests.extensionListIsRead"),
        .proven(
            "RFC 6455 §9.1", "A field that does not follow the grammar fails the connection.",
            by: "ExtensionGrammarTests.grammarErrorHasItsOffset",
            "ServerHandshakeTests.refusalHasTheStatusOfItsReason",
            "ClientHandshakeTests.responseThatBreaksARuleFailsTheConnection"),
        .proven(
            "RFC 6455 §9.1", "What a quoted value holds is a token.",
            by: "ExtensionGrammarTests.grammarErrorHasItsOffset", "ExtensionGrammarTests.extensionListIsRead"),
    ]

    private static let serverAnswer: [Requirement] = [
        .proven(
            "RFC 6455 §4.2.2", "The 101 has Upgrade, Connection and the accept key made from the request's key.",
            by: "ServerHandshakeTests.exampleOfTheRFCIsAccepted", "AcceptKeyTests.keyOfTheRFCHasItsValue",
            "MessageDigestTests.sha1HasTheValuesOfTheStandard"),
        .proven(
            "RFC 6455 §4.2.2", "The subprotocol chosen is one of the client's list, or the field is absent.",
            by: "ServerHandshakeTests.firstSupportedSubprotocolOfTheClientIsChosen"),
        .proven(
            "RFC 6455 §4.2.2", "No extension is accepted that the client did not ask for.",
            by: "PermessageDeflateTests.everyAcceptedOfferIsAnswered"),
        .proven(
            "RFC 6455 §9.1", "Extensions that are not known are passed over.",
            by: "PermessageDeflateTests.offerIsAnsweredByThePolicy"),
    ]
}
