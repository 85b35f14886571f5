import ArgumentParser
import WebSocketProtocol

struct DeflateOptions: ParsableArguments {
    @Flag(help: "Offer permessage-deflate.")
    var deflate = false

    @Option(help: ArgumentHelp("Limit our window.", valueName: "bits"))
    var ownWindow = 15

    @Option(help: ArgumentHelp("Ask the server to limit its window.", valueName: "bits"))
    var peerWindow = 15

    @Flag(help: "Neither side may refer to earlier messages.")
    var noContextTakeover = false

    var policy: DeflatePolicy? {
        guard self.deflate else { return nil }
        return DeflatePolicy(
            ownContextTakeover: !self.noContextTakeover, peerContextTakeover: !self.noContextTakeover,
            ownWindowBits: self.ownWindow, peerWindowBits: self.peerWindow)
    }
}
