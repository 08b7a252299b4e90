/// The version of httpware, as it names itself to servers, in archives and on the command line.
public enum ProgramVersion {
    public static let text = "0.2.0"
}
