package io.github.connectpy.spark;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFileAttributeView;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFs;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FsConstants;
import org.apache.hadoop.fs.FsServerDefaults;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.local.LocalConfigKeys;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's local files, whose permissions and links are handled by calls of the system: Hadoop itself starts a `chmod` for each file that it
 * creates, and a `readlink` for each that it renames.
 */
public final class LocalFiles extends LocalFileSystem {

    public LocalFiles() {
        super(new Raw());
    }

    private static final class Raw extends RawLocalFileSystem {

        @Override
        public void setPermission(Path path, FsPermission permission) throws IOException {
            PosixFileAttributeView file = Files.getFileAttributeView(pathToFile(path).toPath(), PosixFileAttributeView.class);
            if (file == null || permission.getStickyBit()) {
                super.setPermission(path, permission);
            } else {
                String text = permission.getUserAction().SYMBOL + permission.getGroupAction().SYMBOL + permission.getOtherAction().SYMBOL;
                file.setPermissions(PosixFilePermissions.fromString(text));
            }
        }

        @Override
        public FileStatus getFileLinkStatus(Path path) throws IOException {
            return Files.isSymbolicLink(pathToFile(path).toPath()) ? super.getFileLinkStatus(path) : getFileStatus(path);
        }
    }

    /** The same files for `FileContext`, by which Delta writes its log. Hadoop makes it by this constructor (`AbstractFileSystem`). */
    public static final class OfContext extends ChecksumFs {

        public OfContext(URI uri, Configuration configuration) throws IOException, URISyntaxException {
            super(new RawOfContext(uri, configuration));
        }
    }

    /** As Hadoop's `RawLocalFs`, whose files cannot be chosen. */
    private static final class RawOfContext extends DelegateToFileSystem {

        private RawOfContext(URI uri, Configuration configuration) throws IOException, URISyntaxException {
            super(uri, new Raw(), configuration, FsConstants.LOCAL_FS_URI.getScheme(), false);
        }

        @Override
        public int getUriDefaultPort() {
            return -1;
        }

        @Override
        public FsServerDefaults getServerDefaults(Path path) throws IOException {
            return LocalConfigKeys.getServerDefaults();
        }

        @Override
        public boolean isValidName(String path) {
            return true;
        }
    }
}
