import ArgumentParser
import SessionTasks
import TLSEngine

struct TrustOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Trust these authorities, PEM, instead of the system's.", valueName: "file"))
    var ca: String?

    @Option(help: ArgumentHelp("Name to ask for and verify. (default: the host)", valueName: "name"))
    var serverName: String?

    func settings(for host: String) throws(TLSFailure) -> SecureSettings {
        var configuration = TLSConfiguration.client()
        if let ca = self.ca { configuration.trust = .only([.file(ca)]) }
        return SecureSettings(context: try TLSContext(configuration), serverName: self.serverName ?? host)
    }
}
