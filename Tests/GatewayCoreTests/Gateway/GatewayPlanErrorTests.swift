import GatewayConfiguration
import GatewayCore
import StreamTransport
import Testing

@Suite("Configurations that cannot run")
struct GatewayPlanErrorTests {
    private static let port = ListenAddress.tcp(.v4(0xC000_0201), port: 80)
    private static let socket = ListenAddress.unix(path: "/none/x", mode: 0o600)

    @Test(arguments: [
        (
            Self.port, SystemError.addressNotAvailable,
            "no network interface has this address: choose another, or * for all"
        ),
        (Self.port, .accessDenied, "choose a port above 1023, or grant CAP_NET_BIND_SERVICE"),
        (Self.socket, .accessDenied, "check the permissions of its directory"),
        (Self.socket, .noSuchFile, "create its directory, or choose another path"),
        (Self.socket, .addressInUse, "stop it, or choose another address"),
        (Self.port, .processDescriptorsExhausted, ""),
    ])
    func refusedAddressComesWithARemedy(_ address: ListenAddress, _ error: SystemError, _ remedy: String) {
        let problem = GatewayPlanError(.init(listening: error), at: .listener("web", at: address))
        #expect(problem.remedy == remedy)
        #expect(problem.description.hasPrefix("listener 'web' at \(address): "))
        #expect(problem.description.hasSuffix(remedy.isEmpty ? "\(error)" : "; \(remedy)"))
    }

    @Test func controlPlaneHasTheSameRemedies() {
        let address = ControlSettings.Address.unix(path: "/none/x", mode: 0o600)
        let problem = GatewayPlanError(.init(listening: .noSuchFile), at: .control(at: address))
        #expect(problem.remedy == "create its directory, or choose another path")
        // Not an address that was refused.
        #expect(GatewayPlanError(.system(.noSuchFile), at: .control()).remedy.isEmpty)
    }

    @Test func socketThatSystemdDidNotPassIsNamedSo() {
        let address = ListenAddress.adopted(.name("web"))
        let problem = GatewayPlanError(.init(listening: .noSuchFile, at: address), at: .listener("web", at: address))
        #expect(
            problem.description == """
                listener 'web' at systemd:web: systemd passed no such socket; start the gateway by its .socket unit, \
                with this FileDescriptorName, or choose another address
                """)
    }
}
